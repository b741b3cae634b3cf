package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
	"herald/tools/sandbox/sandboxtest"
)

// contained is a house whose commands run in a container. The model does what it is told: "run <command>" in the terminal,
// "send <path>" as an attachment.
func contained(t *testing.T, tune ...func(*gatewaytest.House)) (h *gatewaytest.House, place string) {
	h = gatewaytest.Build(t, modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if result, ok := r.ToolResult(); ok {
			return modeltest.Text("it said " + result)
		}
		what, rest, _ := strings.Cut(r.LastUser(), " ")
		switch what {
		case "run":
			return modeltest.Calls("c", "terminal", fmt.Sprintf(`{"command":%q}`, rest))
		case "send":
			return modeltest.Text("Here it is.\nMEDIA:" + rest)
		}
		return modeltest.Text("hi")
	}))
	dir := filepath.Join(h.Home, "sandboxes")
	sandboxtest.Need(t, dir)
	h.Set["terminal.backend"], h.Set["terminal.docker_image"] = "docker", sandboxtest.Image
	for _, f := range tune {
		f(h)
	}
	h.Run()
	return h, filepath.Join(dir, "docker", "default")
}

// said waits for the answer about a command's output.
func said(h *gatewaytest.House, chat int64, part string) {
	h.T.Helper()
	h.Until(fmt.Sprintf("the command says %q", part), func() bool {
		for _, text := range h.Texts(chat) {
			if _, output, ok := strings.Cut(text, "it said "); ok && strings.Contains(output, part) {
				return true
			}
		}
		return false
	})
}

// awaitFile waits for a file in a chat.
func awaitFile(h *gatewaytest.House, chat int64, name string) (found telegramtest.Message) {
	h.T.Helper()
	h.Until("chat gets the file "+name, func() bool {
		for _, m := range h.Telegram.Visible(chat) {
			if m.Bot && m.File == name {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// Files that were made in a real container arrive as attachments, from its mounts and from the rest of it; credentials, and
// files of this machine, do not. After a restart, before any command has run, they are found by the layout.
func TestHosted_FilesOfAContainerAreDelivered(t *testing.T) {
	h, place := contained(t)
	secret := filepath.Join(h.Home, "elsewhere.txt")
	require.NoError(t, os.WriteFile(secret, []byte("this machine's"), 0o644))
	h.Telegram.Say(7, "run echo workspace >/workspace/w.txt; echo home >/root/h.txt; echo tmp >/tmp/t.txt; ln -s /root/h.txt /workspace/link.txt; "+
		"ln -s "+secret+" /workspace/host.txt; mkdir -p /root/.ssh; echo key >/root/.ssh/id_rsa; ln -s /root/.ssh/id_rsa /workspace/key.txt; echo made")
	said(h, 7, "made")
	for path, want := range map[string]string{"/workspace/w.txt": "workspace\n", "/root/h.txt": "home\n", "/tmp/t.txt": "tmp\n", "/workspace/link.txt": "home\n"} {
		h.Telegram.Say(7, "send "+path)
		require.Equal(t, want, string(awaitFile(h, 7, filepath.Base(path)).Body), path)
	}
	for i, path := range []string{"/root/.ssh/id_rsa", "/workspace/key.txt", "/workspace/host.txt", secret, "/etc/shadow"} {
		chat := int64(20 + i)
		h.Telegram.Say(chat, "send "+path)
		h.Await(chat, filepath.Base(path))
		for _, m := range h.Telegram.Visible(chat) {
			require.Empty(t, m.File, path)
		}
	}
	left, err := filepath.Glob(filepath.Join(h.Home, "cache", "media", "out", "*", "*"))
	require.NoError(t, err)
	require.Len(t, left, 4)
	h.Halt()

	h.Set["terminal.backend"] = "auto"
	h.Run()
	require.NoError(t, os.WriteFile(filepath.Join(place, "workspace", "later.txt"), []byte("x"), 0o644))
	h.Telegram.Say(8, "send /workspace/later.txt")
	require.Equal(t, "x", string(awaitFile(h, 8, "later.txt").Body))
}

// What a command does to /workspace of a real container is taken back by /rollback, with modes and owners; everything is
// named as the container names it. A link that the container plants leads the rollback nowhere.
func TestHosted_RollbackOfAContainer(t *testing.T) {
	for name, hostUser := range map[string]string{"root": "false", "the daemon's user": "true"} {
		t.Run(name, func(t *testing.T) {
			h, place := contained(t, func(h *gatewaytest.House) { h.Set["terminal.docker_run_as_host_user"] = hostUser })
			file := func(name string) string { return filepath.Join(place, "workspace", name) }
			look := func(name string) string {
				info, err := os.Lstat(file(name))
				if err != nil {
					return "gone"
				}
				st := info.Sys().(*syscall.Stat_t)
				return fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
			}
			h.Telegram.Say(7, "run cd /workspace && mkdir sub && echo plan >plan.txt && echo x >run.sh && echo s >sub/secret && chmod 640 plan.txt && chmod 750 run.sh && chmod 600 sub/secret && ls && cd /root && echo set-up")
			said(h, 7, "set-up")
			names := []string{"plan.txt", "run.sh", "sub/secret"}
			before := map[string]string{}
			for _, name := range names {
				before[name] = look(name)
			}
			host := filepath.Join(h.Home, "host")
			require.NoError(t, os.MkdirAll(host, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(host, "secret"), []byte("the host's"), 0o644))
			h.Telegram.Say(7, "run cd /workspace; echo broken >plan.txt; rm run.sh; rm -r sub; ln -s "+host+" sub; echo new >made.txt; echo done-it")
			said(h, 7, "done-it")
			require.Equal(t, "gone", look("run.sh"))

			h.Telegram.Say(7, "/rollback")
			h.Await(7, "Checkpoints of /workspace")
			h.Telegram.Say(7, "/diff 1 --stat")
			h.Await(7, "plan.txt")
			h.Telegram.Say(7, "/rollback 1 now")
			h.Await(7, "files are as they were")
			for _, name := range names {
				require.Equal(t, before[name], look(name), name)
			}
			data, err := os.ReadFile(file("plan.txt"))
			require.NoError(t, err)
			require.Equal(t, "plan\n", string(data))
			require.Equal(t, "gone", look("made.txt"))
			data, err = os.ReadFile(filepath.Join(host, "secret"))
			require.NoError(t, err)
			require.Equal(t, "the host's", string(data))
			h.Telegram.Say(7, "run cat /workspace/sub/secret && echo still-readable")
			said(h, 7, "still-readable")
			for _, m := range h.Telegram.Visible(7) {
				if m.Bot {
					require.NotContains(t, m.Text, place, "the host's names stay here")
				}
			}
		})
	}
}

// A container that keeps nothing has no checkpoints, and says so; its results are as ever.
func TestHosted_RollbackWhereThereIsNone(t *testing.T) {
	h, _ := contained(t, func(h *gatewaytest.House) { h.Set["terminal.container_persistent"] = "false" })
	h.Telegram.Say(7, "run echo x >/workspace/x && cat /workspace/x && echo fine")
	said(h, 7, "fine")
	for i, command := range []string{"/rollback", "/diff", "/rollback 1 now"} {
		h.Telegram.Say(7, command)
		h.Until("it says why", func() bool { return h.Count(7, "a place that this machine does not see") == i+1 })
	}
	require.NoDirExists(t, filepath.Join(h.Home, "checkpoints"))
}
