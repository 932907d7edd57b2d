"""The commands of the development kit, `numalign lab` and `numalign oracle`. The product's wheel leaves them out.

`main` registers them where numalign-devkit is installed. Other packages of the command line do not import them."""
