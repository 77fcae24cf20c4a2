"""The bilevel loop and its journal: the only room that knows the whole way."""
