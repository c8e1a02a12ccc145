"""The LSTM encoder-decoders of Prakash et al. 2016."""
