"""bat-core: a benchmark that scores stages, turned into a teacher."""
