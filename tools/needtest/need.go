// Package needtest is how a test says that this machine lacks what it needs: it is skipped there, with the reason, and
// fails where CI is set, so that nothing is skipped unseen.
package needtest

import (
	"os"
	"testing"
)

// Lacking ends the test: skipped with the reason, or failed where the variable CI is set.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("required in CI: "+format, args...)
	}
	t.Skipf(format, args...)
}

// Heavy leaves a test out of a quick run (go test -short, which `make quick` uses) because it needs a server or a program that
// takes long to install or to start, such as a container engine or a browser.
func Heavy(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out of a quick run: it needs " + what)
	}
}
