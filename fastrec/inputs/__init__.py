"""Lists, truth and scored rows of users, read into flat arrays with user pointers."""
