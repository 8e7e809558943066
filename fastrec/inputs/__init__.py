"""What a user has, turned into flat arrays with user pointers."""
