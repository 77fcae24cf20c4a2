"""What a plugin may implement: one abstract class a file, and the pluggy hook specifications."""
