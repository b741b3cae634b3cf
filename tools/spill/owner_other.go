//go:build !unix

package spill

import "io/fs"

// noFollow has no counterpart here; O_EXCL alone refuses an existing link.
const noFollow = 0

// owned is true where the system has no user ids: access lists of the temporary directory are per user there.
func owned(fs.FileInfo) bool { return true }
