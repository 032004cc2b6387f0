pub mod best_observed;
