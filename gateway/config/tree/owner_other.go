//go:build !unix

package tree

import (
	"fmt"
	"os"
)

// Ownership describes the mode of a path, for messages.
func Ownership(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + " is not accessible"
	}
	return fmt.Sprintf("%s has mode %04o", path, info.Mode().Perm())
}
