"""Child processes of ours that answer in frames, and that can't outlive their parent."""
