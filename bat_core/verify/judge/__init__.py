"""The judge: a model behind an OpenAI-compatible endpoint, asked one item a call, believed only with quotes."""
