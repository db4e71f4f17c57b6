// A job that does nothing: what a launcher costs.
