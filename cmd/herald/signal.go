package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"herald/gateway/config"
	"herald/platforms/signal"
)

func signalCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "signal", Short: "Set a Signal account up", Example: "  herald signal link"}
	cmd.AddCommand(signalLinkCmd(g))
	return cmd
}

func signalLinkCmd(g *globals) *cobra.Command {
	var name, url string
	cmd := &cobra.Command{
		Use: "link", Short: "Make signal-cli a linked device of your Signal account", Args: cobra.NoArgs,
		Long: `Make signal-cli a linked device of your Signal account, as Signal's desktop program is one: this shows a QR code, you
scan it with the phone (Signal, Settings, Linked devices, Link a new device), and Herald answers as that account.

signal-cli must run and serve any account, which it does without -a:

  signal-cli daemon --http 127.0.0.1:8080

Whoever scans the code decides whose account it is, and whoever sees it while it lasts could scan it: show it to
nobody else.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				var err error
				if url, err = g.signalURL(); err != nil {
					return err
				}
			}
			root, err := signal.Root(url)
			if err != nil {
				return fmt.Errorf("--url: %w", err)
			}
			return linkSignal(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), root, name, g.envFile())
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", signal.DefaultDevice, "how the phone names this device")
	f.StringVar(&url, "url", "", "the HTTP interface of signal-cli (default SIGNAL_HTTP_URL)")
	return cmd
}

// linkSignal shows codes on out until one was scanned, and what goes on on errs.
func linkSignal(ctx context.Context, out, errs io.Writer, root, name, envFile string) error {
	client := signal.NewClient(root, true)
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown, told := make(chan struct{}, signal.LinkTries), make(chan struct{})
	go func() {
		defer close(told)
		progress(ctx, errs, shown)
	}()
	var drawing error
	number, err := client.Link(ctx, name, func(uri string) {
		code, err := signal.TerminalQR(uri)
		if err != nil {
			drawing = err
		}
		fmt.Fprintf(out, "\n%s\nOn the phone: Signal, Settings, Linked devices, Link a new device. If the code can't be shown here, make one of:\n%s\n", code, uri)
		select {
		case shown <- struct{}{}:
		default:
		}
	})
	cancel()
	<-told
	if err != nil {
		return err
	}
	if drawing != nil {
		fmt.Fprintln(errs, "the code could not be drawn:", drawing)
	}
	fmt.Fprintf(out, "\nLinked: signal-cli has the account %s.\nPut this into %s and start herald run:\n\n  SIGNAL_ACCOUNT=%s\n  SIGNAL_ALLOWED_USERS=the numbers of the people who may talk\n", number, envFile, number)
	return nil
}

// progress writes how long the code of now has been waited for, on a terminal.
func progress(ctx context.Context, errs io.Writer, shown <-chan struct{}) {
	file, ok := errs.(*os.File)
	terminal := ok && isatty.IsTerminal(file.Fd())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			if terminal && !since.IsZero() {
				fmt.Fprintln(errs)
			}
			return
		case <-shown:
			since = time.Now()
			if !terminal {
				fmt.Fprintln(errs, "waiting for the phone …")
			}
		case <-tick.C:
			if terminal && !since.IsZero() {
				fmt.Fprintf(errs, "\rwaiting for the phone … %s ", time.Since(since).Round(time.Second))
			}
		}
	}
}

// signalURL is where the configuration says that signal-cli is. It makes no home.
func (g *globals) signalURL() (string, error) {
	home, err := config.ResolveHome(g.home, g.profileName(), os.Environ())
	if err != nil {
		return "", coded{err, exitConfig}
	}
	source, err := g.source(config.Paths{Home: home})
	if err != nil {
		return "", err
	}
	cfg, _, err := config.Load(source)
	if err != nil {
		return "", coded{err, exitConfig}
	}
	b, _ := cfg.Platforms.Block(signal.Platform)
	return b.Settings.(*signal.Settings).HTTPURL, nil
}

// envFile names the file for environment variables.
func (g *globals) envFile() string {
	home, err := config.ResolveHome(g.home, g.profileName(), os.Environ())
	if err != nil {
		return ".env"
	}
	return filepath.Join(home, ".env")
}
