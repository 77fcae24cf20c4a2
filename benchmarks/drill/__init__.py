"""A fictional five-stage drill: the checks for files of recorded rollouts, built from the toolbox for authors."""
