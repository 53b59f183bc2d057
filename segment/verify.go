package segment

// Verify checks the checksums of all sections.
func (r *Reader) Verify() error {
	for _, s := range r.sections {
		if err := r.checkSum(s); err != nil {
			return err
		}
	}
	return nil
}
