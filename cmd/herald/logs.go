package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

func logsCmd(g *globals) *cobra.Command {
	follow, lines, raw := false, 50, false
	cmd := &cobra.Command{
		Use: "logs", Short: "Show the daemon's log", Args: cobra.NoArgs,
		Example: "  herald logs\n  herald logs -f -n 200",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 || lines > 1_000_000 {
				return fmt.Errorf("-n %d: want 0 to 1000000", lines)
			}
			paths, err := g.paths()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			var w io.Writer = zerolog.ConsoleWriter{Out: out, NoColor: out != os.Stdout, TimeFormat: time.DateTime}
			if raw {
				w = out
			}
			return showLog(cmd.Context(), filepath.Join(paths.Logs, "herald.log"), lines, follow, w)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new lines until Ctrl+C")
	cmd.Flags().IntVarP(&lines, "lines", "n", 50, "how many of the last lines")
	cmd.Flags().BoolVar(&raw, "json", false, "print the lines as they are")
	return cmd
}

// showLog prints the last lines of a log and, with follow, what is added until ctx ends.
func showLog(ctx context.Context, path string, lines int, follow bool, w io.Writer) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: the daemon has not run here yet, or log.file is false", path)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	reader := bufio.NewReader(f)
	last := make([]string, 0, lines)
	for {
		line, err := reader.ReadString('\n')
		if line != "" && lines > 0 {
			if len(last) == lines {
				last = append(last[:0], last[1:]...)
			}
			last = append(last, line)
		}
		if err != nil {
			break
		}
	}
	for _, line := range last {
		write(w, line)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for follow {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				write(w, line)
			}
			if err != nil {
				break
			}
		}
		// A rotated log is a new file under the old name.
		if now, err := os.Stat(path); err == nil {
			if old, err := f.Stat(); err == nil && !os.SameFile(now, old) {
				if next, err := os.Open(path); err == nil {
					_ = f.Close()
					f, reader = next, bufio.NewReader(next)
				}
			}
		}
	}
	return nil
}

// write prints one line; a line that is no JSON is printed as it is.
func write(w io.Writer, line string) {
	if _, err := w.Write([]byte(line)); err != nil {
		fmt.Fprint(os.Stdout, line)
	}
}
