"""What all compiled code needs: whether it is wanted, and how it touches memory."""
