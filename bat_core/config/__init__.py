"""OmegaConf merges, pydantic decides."""
