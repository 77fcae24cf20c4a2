"""A teacher model: proposes tasks in the manner of Self-Instruct and solves them turn by turn."""
