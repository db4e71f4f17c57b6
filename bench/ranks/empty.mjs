// A job that does nothing: the cost of a launcher.
