package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/gateway/workspace"
	"herald/tools/sandbox"
	"herald/tools/sandbox/docker"
)

func sandboxCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Look into the place where the agent's commands run",
		Long: `Look into the place where the agent's commands run (terminal.backend): this machine, a container, or another host.
What these verbs do happens in the same container as the commands of the chats. A daemon may run or not.`,
		Example: "  herald sandbox status\n  herald sandbox exec -- ls -l\n  herald sandbox shell",
	}
	cmd.AddCommand(sandboxStatusCmd(g), sandboxExecCmd(g), sandboxShellCmd(g), sandboxResetCmd(g), sandboxBuildCmd(g), sandboxPruneCmd(g))
	return cmd
}

// sandbox is the profile's place as its configuration has it.
func (g *globals) sandbox() (workspace.Settings, error) {
	paths, err := g.paths()
	if err != nil {
		return workspace.Settings{}, err
	}
	source, err := g.source(paths)
	if err != nil {
		return workspace.Settings{}, err
	}
	cfg, report, err := config.Load(source)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return workspace.Settings{}, coded{err, exitConfig}
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}).Level(zerolog.WarnLevel)
	return workspace.Settings{Config: cfg, Paths: paths, Profile: g.profileName(), Log: log, Now: time.Now}, nil
}

// container runs fn with the profile's container, which is closed afterwards and lives on.
func (g *globals) container(fn func(*docker.Environment) error) error {
	s, err := g.sandbox()
	if err != nil {
		return err
	}
	if b := s.Config.Terminal.Backend; b != "docker" && b != "auto" {
		return coded{fmt.Errorf("terminal.backend is %s: there is no container", b), exitConfig}
	}
	o, err := s.Docker("")
	if err != nil {
		return err
	}
	o.KeepRunning = true // this verb's end is not the daemon's
	d, err := docker.New(o)
	if err != nil {
		return coded{err, exitConfig}
	}
	return errors.Join(fn(d), d.Close())
}

func sandboxStatusCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say where commands run and what is there", Args: cobra.NoArgs, Example: "  herald sandbox status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.sandbox()
			if err != nil {
				return err
			}
			out, t := cmd.OutOrStdout(), s.Config.Terminal
			fmt.Fprintf(out, "backend    %s\n", t.Backend)
			var reply admin.Status
			if g.call(cmd.Context(), "status", nil, &reply) == nil {
				fmt.Fprintf(out, "daemon     uses %s (%s)\n", reply.Sandbox, reply.SandboxBecause)
			}
			switch t.Backend {
			case "local":
				fmt.Fprintf(out, "directory  %s\n", s.Config.WorkDir(s.Paths))
				return nil
			case "ssh":
				fmt.Fprintf(out, "host       %s\n", t.SSHHost)
				return nil
			}
			return g.container(func(d *docker.Environment) error { return printContainer(cmd.Context(), out, d, t.Backend == "auto") })
		},
	}
}

// printContainer describes engine and container. That no engine answers is no failure where it is optional.
func printContainer(ctx context.Context, out io.Writer, d *docker.Environment, optional bool) error {
	e, err := d.Engine(ctx)
	if err != nil && optional {
		fmt.Fprintf(out, "engine     none: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "engine     %s %s at %s\n", e.Name, e.Version, e.Address)
	fmt.Fprintf(out, "image      %s\n", d.Image())
	fmt.Fprintf(out, "key        %s\n", d.Key())
	if dir := d.FilesDir(); dir != "" {
		fmt.Fprintf(out, "files      %s\n", dir)
	}
	info, ok, err := d.Find(ctx)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintln(out, "container  none yet; the first command makes it")
		return nil
	}
	fmt.Fprintf(out, "container  %s (%s), %s, made %s from %s\n", info.Name, info.ID, info.State, info.Created.Local().Format(time.DateTime), info.Image)
	network := "on"
	if info.Network == "none" {
		network = "off"
	}
	fmt.Fprintf(out, "network    %s\n", network)
	if info.CPU > 0 || info.MemoryMB > 0 {
		fmt.Fprintf(out, "limits     %.3g cores, %d MB of memory\n", info.CPU, info.MemoryMB)
	} else {
		fmt.Fprintln(out, "limits     none")
	}
	for _, m := range info.Mounts {
		mode := "read and write"
		if m.ReadOnly {
			mode = "read only"
		}
		fmt.Fprintf(out, "mount      %s is %s (%s)\n", m.Container, m.Host, mode)
	}
	return nil
}

func sandboxExecCmd(g *globals) *cobra.Command {
	limit := time.Duration(0)
	cmd := &cobra.Command{
		Use: "exec -- command...", Short: "Run a command where the agent's commands run", Args: cobra.MinimumNArgs(1),
		Long: `Run a command where the agent's commands run. One argument is shell text; several are a program and its arguments.
Its exit code is this verb's. Standard input is passed on unless it is a terminal.`,
		Example: "  herald sandbox exec 'ls -l | head'\n  herald sandbox exec -- git -C /workspace status",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.sandbox()
			if err != nil {
				return err
			}
			s.Config.Terminal.DockerKeep = true // this verb's end is not the daemon's
			g.follow(cmd.Context(), s)
			env, err := s.Open()
			if err != nil {
				return err
			}
			c := sandbox.Command{Line: line(args), Timeout: limit, Output: cmd.OutOrStdout()}
			if f, ok := cmd.InOrStdin().(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
				c.Stdin = cmd.InOrStdin()
			}
			r, err := env.Exec(cmd.Context(), c)
			if cerr := env.Close(); err == nil {
				err = cerr
			}
			switch {
			case err != nil:
				return err
			case r.ExitCode != 0:
				return coded{fmt.Errorf("the command ended with code %d", r.ExitCode), max(1, r.ExitCode)}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 0, "time limit, such as 30s; 0: none")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// follow takes over what a running daemon decided on for backend auto, so that both work in the same place.
func (g *globals) follow(ctx context.Context, s workspace.Settings) {
	var reply admin.Status
	if s.Config.Terminal.Backend != "auto" || g.call(ctx, "status", nil, &reply) != nil {
		return
	}
	if reply.Sandbox == "local" || reply.Sandbox == "docker" {
		s.Config.Terminal.Backend = reply.Sandbox
	}
}

// line makes shell text of arguments.
func line(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

func sandboxShellCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "Open a shell in the container", Args: cobra.NoArgs, Example: "  herald sandbox shell",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.container(func(d *docker.Environment) error { return shell(cmd.Context(), d) })
		},
	}
}

// shell hands this terminal to the container's shell.
func shell(ctx context.Context, d *docker.Environment) error {
	t := docker.Terminal{In: os.Stdin, Out: os.Stdout, Term: os.Getenv("TERM")}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return errors.New("standard input is no terminal; herald sandbox exec runs a command without one")
	}
	size := func() [2]uint {
		w, h, err := term.GetSize(in)
		if err != nil {
			return [2]uint{80, 24}
		}
		return [2]uint{uint(max(w, 1)), uint(max(h, 1))}
	}
	now := size()
	t.Width, t.Height = now[0], now[1]
	resized := make(chan [2]uint, 1)
	t.Resized = resized
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	over := make(chan struct{})
	defer close(over)
	defer signal.Stop(changes)
	go func() {
		for {
			select {
			case <-changes:
				select {
				case resized <- size():
				case <-over:
					return
				}
			case <-over:
				return
			}
		}
	}()
	old, err := term.MakeRaw(in)
	if err != nil {
		return err
	}
	code, err := d.Shell(ctx, t)
	_ = term.Restore(in, old)
	switch {
	case err != nil:
		return err
	case code != 0:
		return coded{fmt.Errorf("the shell ended with code %d", code), code}
	}
	return nil
}

func sandboxResetCmd(g *globals) *cobra.Command {
	files, yes := false, false
	cmd := &cobra.Command{
		Use: "reset", Short: "Remove the container, so that the next command gets a new one", Args: cobra.NoArgs,
		Long: `Remove the container, so that the next command gets a new one from the image as it is configured now. What was installed
in it and what runs in it is lost. The files below /root and /workspace stay, but for --files.`,
		Example: "  herald sandbox reset\n  herald sandbox reset --files --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if files && !yes {
				return errors.New("--files deletes everything below the container's /root and /workspace: say --yes too")
			}
			return g.container(func(d *docker.Environment) error {
				n, err := d.Discard(cmd.Context())
				if err == nil && files {
					err = d.DiscardFiles()
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "containers removed: %d\n", n)
				if files {
					fmt.Fprintf(cmd.OutOrStdout(), "files deleted: %s\n", d.FilesDir())
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&files, "files", false, "delete the files below /root and /workspace too")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete without asking")
	return cmd
}

func sandboxBuildCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Build or pull the image now, not at the first command", Args: cobra.NoArgs, Example: "  herald sandbox build",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.container(func(d *docker.Environment) error {
				out := cmd.OutOrStdout()
				if err := d.MakeImage(cmd.Context(), func(line string) { fmt.Fprintln(out, line) }); err != nil {
					return err
				}
				fmt.Fprintf(out, "the image %s is there\n", d.Image())
				return nil
			})
		},
	}
}

func sandboxPruneCmd(g *globals) *cobra.Command {
	age := time.Duration(0)
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove containers of this profile that ended long ago", Args: cobra.NoArgs, Example: "  herald sandbox prune\n  herald sandbox prune --age 1h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.container(func(d *docker.Environment) error {
				n, err := d.Reap(cmd.Context(), age)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "containers removed: %d\n", n)
				}
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&age, "age", 10*time.Minute, "how long ago they must have ended")
	return cmd
}
