package mapped

// advise does nothing: Windows reads ahead and gives back as it thinks fit.
func advise([]byte, Advice) {}
