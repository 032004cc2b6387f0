"""belated inside other packages: one module for each, which imports that package and is imported by its users alone."""
