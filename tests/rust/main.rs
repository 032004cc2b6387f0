//! The core from outside: laws that hold between its parts.
