package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
)

// cliCarrier runs programs in a container through the docker command line.
type cliCarrier struct{ name string }

func (cliCarrier) backend() string { return "docker" }

func (c cliCarrier) run(ctx context.Context, argv []string, s streams) (int, error) {
	args := []string{"exec", "-w", "/"}
	env := os.Environ()
	if s.in != nil {
		args = append(args, "-i")
	}
	for name, value := range s.env {
		args, env = append(args, "-e", name), append(env, name+"="+value)
	}
	cmd := exec.CommandContext(ctx, "docker", append(append(args, c.name), argv...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, s.in, s.out, s.err
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return -1, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return 0, nil
}

func (cliCarrier) close() error { return nil }

// container starts one of the test images.
func container(t *testing.T, image string) string {
	t.Helper()
	if err := exec.Command("docker", "image", "inspect", image).Run(); err != nil {
		needtest.Lacking(t, "no Docker engine with the image %s", image)
	}
	name := "herald-suite-" + randomID()
	out, err := exec.Command("docker", "run", "-d", "--name", name, "--label", "herald-suite=1", image, "sleep", "3600").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", strings.TrimSpace(name)).Run() })
	return name
}
