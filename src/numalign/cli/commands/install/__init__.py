"""The commands that install numalign, keep it installed and check the installation."""
