// Package sandbox holds the recipe of the container image that commands run in by default. It knows nothing else.
package sandbox

import _ "embed"

// Dockerfile is the recipe. It needs no other file.
//
//go:embed Dockerfile
var Dockerfile []byte
