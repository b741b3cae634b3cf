// Package sandboxtest is for tests that run commands in real containers and behind a real SSH server: the image, the server,
// and the end of what they made.
package sandboxtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"
	"time"

	"herald/tools/needtest"
)

// Image is the image of these tests, with bash, coreutils, git and python3. .ci/engine makes it.
const Image = "herald-test/debian"

// Need ends the test where no container engine answers or the image is not there, and removes all containers of a sandbox
// directory when the test has ended.
func Need(t testing.TB, sandboxDir string) {
	t.Helper()
	needtest.Heavy(t, "a container engine")
	if out, err := exec.Command("docker", "image", "inspect", "--format", "{{.Id}}", Image).CombinedOutput(); err != nil {
		needtest.Lacking(t, "no container engine with the image %s (run .ci/engine): %s", Image, out)
	}
	t.Cleanup(func() { Remove(t, sandboxDir) })
}

// Containers lists the ids of a sandbox directory's containers, running or not.
func Containers(t testing.TB, sandboxDir string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	sum := sha256.Sum256([]byte(sandboxDir))
	out, err := exec.CommandContext(ctx, "docker", "ps", "-aq", "--filter", "label=herald-sandbox="+hex.EncodeToString(sum[:])[:12]).Output()
	if err != nil {
		t.Fatalf("docker ps: %v", err)
	}
	return strings.Fields(string(out))
}

// Remove removes them.
func Remove(t testing.TB, sandboxDir string) {
	t.Helper()
	for _, id := range Containers(t, sandboxDir) {
		if out, err := exec.Command("docker", "rm", "-f", "-v", id).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such container") {
			t.Errorf("docker rm: %s", out)
		}
	}
}
