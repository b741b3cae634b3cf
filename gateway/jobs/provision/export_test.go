package provision

// ReadProvided is readProvided: what is wrong with a file, and how many jobs are in it.
func ReadProvided(name string, data []byte) (problems []string, jobs int) {
	f := readProvided(name, data)
	return f.texts(), len(f.jobs)
}
