package local

import (
	"errors"
	"fmt"
	"io/fs"
)

// SafeDir returns what getwd returns. When the working directory was deleted, or may not be looked at
// (macOS privacy protection), it is configured if that is set, else home. Any other error is returned.
// It logs nothing: callers poll it.
func SafeDir(getwd func() (string, error), configured, home string) (string, error) {
	dir, err := getwd()
	switch {
	case err == nil:
		return dir, nil
	case !lost(err):
		return "", fmt.Errorf("working directory: %w", err)
	case configured != "":
		return configured, nil
	default:
		return home, nil
	}
}

// lost reports whether err means a directory that is gone or closed to us, the two cases that have a
// fallback.
func lost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// pickDir returns the first usable of the remembered directory, the configured one and home. moved is true
// when it is not the remembered one.
func pickDir(usable func(string) error, remembered, configured, home string) (dir string, moved bool, err error) {
	for i, d := range []string{remembered, configured, home} {
		if d == "" {
			continue
		}
		err = usable(d)
		if err == nil {
			return d, i > 0 && d != remembered, nil
		}
		if !lost(err) {
			return "", false, fmt.Errorf("working directory %q: %w", d, err)
		}
	}
	if err == nil {
		err = fs.ErrNotExist
	}
	return "", false, fmt.Errorf("no usable working directory (tried %q, %q, %q): %w", remembered, configured, home, err)
}
