package workspace_test

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/tools/sandbox/sandboxtest"
)

// obeying runs what a message says: "tool {arguments}", and answers with the tool's result.
func obeying() *modeltest.Script {
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if result, ok := r.ToolResult(); ok {
			var out struct{ Output, Content, Status, Error string }
			if json.Unmarshal([]byte(result), &out) != nil || out.Output+out.Content+out.Status+out.Error == "" {
				return modeltest.Text("got " + result)
			}
			return modeltest.Text("got " + strings.TrimSpace(out.Status+" "+out.Output+out.Content+out.Error))
		}
		tool, args, ok := strings.Cut(r.LastUser(), " {")
		if !ok {
			return modeltest.Text("hi")
		}
		return modeltest.Calls("c", tool, "{"+args)
	})
}

// inContainers makes a house whose commands run in containers of its own.
func inContainers(t *testing.T, backend string, tune ...func(*gatewaytest.House)) *gatewaytest.House {
	h := gatewaytest.Build(t, obeying())
	dir := filepath.Join(h.Home, "sandboxes")
	sandboxtest.Need(t, dir)
	h.Set["terminal.backend"], h.Set["terminal.docker_image"] = backend, sandboxtest.Image
	for _, f := range tune {
		f(h)
	}
	h.Run()
	return h
}

// Every chat of a profile works in its one container, the tools for files too, and it outlives the daemon.
func TestSandbox_Docker_OneContainerForAllChats(t *testing.T) {
	h := inContainers(t, "docker")
	dir := filepath.Join(h.Home, "sandboxes")
	require.Empty(t, sandboxtest.Containers(t, dir), "nothing is made before the first command")
	h.Telegram.Say(7, `terminal {"command":"pwd; echo one >note.txt; echo tool >/opt/tool; test -S /var/run/docker.sock || echo no-socket"}`)
	h.Await(7, "got /workspace\nno-socket")
	h.Telegram.Say(8, `read_file {"path":"note.txt"}`)
	h.Await(8, "one")
	h.Telegram.Say(8, `write_file {"path":"/workspace/made.txt","content":"by the file tool\n"}`)
	h.Await(8, "made.txt")
	h.Telegram.Say(8, `terminal {"command":"cat /workspace/made.txt"}`)
	h.Await(8, "got by the file tool")
	require.Len(t, sandboxtest.Containers(t, dir), 1)
	data, err := os.ReadFile(filepath.Join(dir, "docker", "default", "workspace", "made.txt"))
	require.NoError(t, err)
	require.Equal(t, "by the file tool\n", string(data))
	h.UntilStatus(7, "docker")

	h.Halt()
	h.Run()
	h.Telegram.Say(9, `terminal {"command":"cat /opt/tool /workspace/made.txt note.txt"}`)
	h.Await(9, "got tool\nby the file tool\none")
	require.Len(t, sandboxtest.Containers(t, dir), 1)
	h.Halt()
	require.NotContains(t, h.Log.String(), gatewaytest.BotToken)
}

// Nothing of the daemon's gets into the container: no variable, no file of the home.
func TestSandbox_Docker_HasNoSecret(t *testing.T) {
	h := inContainers(t, "docker")
	require.NoError(t, os.WriteFile(filepath.Join(h.Home, "canary"), []byte("canary-in-the-home"), 0o600))
	h.Telegram.Say(7, `terminal {"command":"env; cat /proc/1/environ; cat `+h.Home+`/canary `+h.Home+`/herald.db 2>&1 | head -5"}`)
	got := h.Await(7, "got ").Text
	for _, secret := range []string{gatewaytest.BotToken, "sk-house-tests", "TELEGRAM", "OPENAI", "canary-in-the-home", "SQLite"} {
		require.NotContains(t, got, secret)
	}
}

func TestSandbox_Throwaway_EachConversationItsOwn(t *testing.T) {
	h := inContainers(t, "docker", func(h *gatewaytest.House) { h.Set["terminal.container_persistent"] = "false" })
	dir := filepath.Join(h.Home, "sandboxes")
	h.Telegram.Say(7, `terminal {"command":"echo mine >/root/x; cat /root/x"}`)
	h.Await(7, "got mine")
	h.Telegram.Say(8, `terminal {"command":"cat /root/x"}`)
	h.Await(8, "No such file")
	h.Telegram.Say(7, `read_file {"path":"/root/x"}`)
	h.Await(7, "mine")
	require.Len(t, sandboxtest.Containers(t, dir), 2)
	h.Halt()
	require.Empty(t, sandboxtest.Containers(t, dir), "removed when the daemon stops")
	require.NoDirExists(t, filepath.Join(dir, "docker"))
}

// Backend auto takes a container where an engine answers, this machine where none does, and never this machine once the
// profile's files are in a container.
func TestSandbox_Auto_Decides(t *testing.T) {
	h := inContainers(t, "auto", func(h *gatewaytest.House) { h.Set["terminal.docker_host"] = "unix://" + h.Home + "/no.sock" })
	h.UntilStatus(7, "the first command decides")
	h.Telegram.Say(7, `terminal {"command":"echo $PWD"}`)
	h.Await(7, "got "+filepath.Join(h.Home, "workspace"))
	h.UntilStatus(7, "no container engine answers")
	h.Halt()

	delete(h.Set, "terminal.docker_host")
	h.Run()
	h.Telegram.Say(8, `write_file {"path":"note.txt","content":"in the container"}`)
	h.Await(8, "note.txt")
	require.FileExists(t, filepath.Join(h.Home, "sandboxes", "docker", "default", "workspace", "note.txt"),
		"a relative path is one of the container")
	h.Halt()

	h.Set["terminal.docker_host"] = "unix://" + h.Home + "/no.sock"
	h.Run()
	h.Telegram.Say(9, `terminal {"command":"echo never"}`)
	h.Await(9, "degraded")
	require.Contains(t, h.Await(9, "degraded").Text, "the files of this profile are in a container")
	h.Halt()

	h.Set["terminal.degraded_mode"] = "fail"
	h.Run()
	h.Telegram.Say(10, `terminal {"command":"echo never"}`)
	require.NotContains(t, h.Await(10, "the files of this profile are in a container").Text, "degraded")
}

// An engine that makes no container is as good as none, and leaves the profile free.
func TestSandbox_Auto_EngineWithoutContainers(t *testing.T) {
	h := inContainers(t, "auto", func(h *gatewaytest.House) { h.Set["terminal.docker_extra_args"] = "--runtime=nosuchruntime" })
	h.Telegram.Say(7, `terminal {"command":"echo $PWD"}`)
	h.Await(7, "got "+filepath.Join(h.Home, "workspace"))
	h.UntilStatus(7, "makes no container")
	require.NoDirExists(t, filepath.Join(h.Home, "sandboxes", "docker", "default"))
}

// Values of containers are not looked at where none is used; elsewhere they are errors that name key and variable.
func TestSandbox_ContainerValuesMatterOnlyThere(t *testing.T) {
	for _, backend := range []string{"local", "docker"} {
		h := gatewaytest.Build(t, gatewaytest.Echo())
		h.Set["terminal.backend"] = backend
		h.Env = append(h.Env, "TERMINAL_CONTAINER_CPU=many", "TERMINAL_DOCKER_ENV={broken", "TERMINAL_CONTAINER_MEMORY=lots")
		g, err := h.Open()
		if backend == "local" {
			require.NoError(t, err)
			h.RunOpened(g)
			continue
		}
		require.ErrorContains(t, err, "TERMINAL_CONTAINER_CPU")
		require.ErrorContains(t, err, "TERMINAL_CONTAINER_MEMORY")
		require.ErrorContains(t, err, "TERMINAL_DOCKER_ENV")
	}
	for key, value := range map[string]string{"terminal.docker_extra_args": "--privileged", "terminal.docker_shm_size": "much", "terminal.docker_volumes": "nonsense"} {
		h := gatewaytest.Build(t, gatewaytest.Echo())
		h.Set["terminal.backend"], h.Set[key] = "docker", value
		_, err := h.Open()
		require.ErrorContains(t, err, key)
	}
}

// Commands and files of all chats are on another host, which is not asked before the first command.
func TestSandbox_SSH_AnotherHost(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	me, err := user.Current()
	require.NoError(t, err)
	work := filepath.Join(d.Dir, "work")
	require.NoError(t, os.Mkdir(work, 0o755))
	h := gatewaytest.Build(t, obeying())
	for key, value := range map[string]string{"backend": "ssh", "ssh_host": "127.0.0.1", "ssh_port": strconv.Itoa(d.Port), "ssh_user": me.Username, "ssh_key": d.Key, "cwd": work} {
		h.Set["terminal."+key] = value
	}
	h.Run()
	require.NotContains(t, d.Log(), "Accepted", "nobody connects before the first command")
	h.Telegram.Say(7, `terminal {"command":"pwd; echo one >note.txt; echo conn=${SSH_CONNECTION:+yes}"}`)
	h.Await(7, "got "+work+"\nconn=yes")
	h.Telegram.Say(8, `write_file {"path":"`+work+`/made.txt","content":"by the file tool\n"}`)
	h.Await(8, "made.txt")
	h.Telegram.Say(8, `terminal {"command":"cat made.txt note.txt"}`)
	h.Await(8, "got by the file tool\none")
	h.UntilStatus(7, "ssh")
	require.FileExists(t, filepath.Join(h.Home, "known_hosts"))

	d.Stop()
	h.Telegram.Say(9, `terminal {"command":"true"}`)
	h.Await(9, "degraded")
	h.Halt()
	require.NotContains(t, h.Log.String(), gatewaytest.BotToken)
}
