package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"herald/tools/sandbox"
)

// engineWait is how long an engine may take to say that it is there.
const engineWait = 2 * time.Second

// engine is a container engine that answered: Environment, or Podman behind its compatible socket.
type engine struct {
	api     *client.Client
	address string
	version string
	podman  bool
	// limits says what the engine can enforce; found out by the first container that is made.
	probe limitsProbe
}

// Engine is what a person wants to know of the container engine.
type Engine struct {
	Address string // "unix:///var/run/docker.sock"
	Name    string // "Docker" or "Podman"
	Version string
}

func (e *engine) info() Engine {
	name := "Docker"
	if e.podman {
		name = "Podman"
	}
	return Engine{Address: e.address, Name: name, Version: e.version}
}

func (e *engine) close() error { return e.api.Close() }

// findEngine looks for a container engine that answers within two seconds. address names one, such as
// "unix:///run/podman/podman.sock"; empty looks, in this order, at DOCKER_HOST, the Environment client's current context, the
// sockets of Environment (system, rootless, Desktop), and those of Podman (rootless, system). The error wraps ErrUnavailable
// and says what was tried.
func findEngine(ctx context.Context, address string) (*engine, error) {
	addresses, chosen := engineAddresses(address, os.Getenv, os.Getuid())
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no container engine found: DOCKER_HOST is not set, and neither Docker nor Podman has a socket here; start one, or set terminal.backend to local", sandbox.ErrUnavailable)
	}
	var errs []error
	for _, a := range addresses {
		e, err := dialEngine(ctx, a)
		if err == nil {
			return e, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a, err))
	}
	hint := "start it"
	if chosen {
		hint = "start it, or correct the address"
	}
	return nil, fmt.Errorf("%w: the container engine does not answer; %s: %w", sandbox.ErrUnavailable, hint, errors.Join(errs...))
}

// dialEngine asks one engine for its version.
func dialEngine(ctx context.Context, address string) (*engine, error) {
	if strings.HasPrefix(address, "ssh://") {
		return nil, errors.New("engines behind ssh:// are not supported; forward the socket, or use terminal.backend ssh")
	}
	api, err := client.New(client.WithTLSClientConfigFromEnv(), client.WithHost(address), client.WithAPIVersionFromEnv(),
		client.WithUserAgent("herald"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, engineWait)
	defer cancel()
	v, err := api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		_ = api.Close()
		return nil, err
	}
	e := &engine{api: api, address: address, version: v.Version}
	for _, c := range v.Components {
		e.podman = e.podman || strings.Contains(strings.ToLower(c.Name), "podman")
	}
	return e, nil
}

// engineAddresses lists where an engine may be. chosen means that somebody named the address, and no other is tried.
func engineAddresses(address string, getenv func(string) string, uid int) (list []string, chosen bool) {
	if named := cmp.Or(address, getenv("DOCKER_HOST")); named != "" {
		return []string{named}, true
	}
	home := getenv("HOME")
	if a := contextAddress(cmp.Or(getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker")), getenv("DOCKER_CONTEXT")); a != "" {
		return []string{a}, true
	}
	runtime := cmp.Or(getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", uid))
	sockets := []string{"/var/run/docker.sock", filepath.Join(runtime, "docker.sock"), filepath.Join(home, ".docker/run/docker.sock"),
		filepath.Join(runtime, "podman/podman.sock"), "/run/podman/podman.sock"}
	for _, s := range sockets {
		if st, err := os.Stat(s); err == nil && st.Mode()&os.ModeSocket != 0 {
			list = append(list, "unix://"+s)
		}
	}
	return list, false
}

// contextAddress is the engine of the Environment client's current context, empty for the default one or none.
func contextAddress(dir, name string) string {
	if name == "" {
		var c struct {
			CurrentContext string `json:"currentContext"`
		}
		if data, err := os.ReadFile(filepath.Join(dir, "config.json")); err != nil || json.Unmarshal(data, &c) != nil {
			return ""
		}
		name = c.CurrentContext
	}
	if name == "" || name == "default" {
		return ""
	}
	sum := sha256.Sum256([]byte(name)) // the client names the directory so
	data, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"))
	if err != nil {
		return ""
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if json.Unmarshal(data, &meta) != nil {
		return ""
	}
	return meta.Endpoints["docker"].Host
}

// notRunning reports whether the engine refused because the container is not there or does not run.
func notRunning(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) ||
		strings.Contains(text, "is not running") || strings.Contains(text, "container state improper")
}
