"""The Transformer with a recurrent decoder of Kim et al. 2019."""
