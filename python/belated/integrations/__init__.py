"""belated inside other packages: one module for each package, which only users of that package import."""
