package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"herald/gateway/config"
	"herald/gateway/workspace"
	"herald/tools/checkpoint"
)

// checkpoints opens the profile's checkpoints. They have a lock of their own: a running daemon is no obstacle.
func (g *globals) checkpoints() (*checkpoint.Store, workspace.Settings, error) {
	none := workspace.Settings{}
	paths, err := g.paths()
	if err != nil {
		return nil, none, err
	}
	source, err := g.source(paths)
	if err != nil {
		return nil, none, err
	}
	cfg, report, err := config.Load(source)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return nil, none, coded{err, exitConfig}
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}).Level(zerolog.WarnLevel)
	place := workspace.Settings{Config: cfg, Paths: paths, Profile: g.profileName(), Log: log, Now: time.Now}
	store := place.Checkpoints()
	if !store.On() {
		return nil, none, coded{errors.New("checkpoints are off: git is not installed, or checkpoints.enabled is false"), exitConfig}
	}
	return store, place, nil
}

// rollbackFlags are what `herald rollback` can be told.
type rollbackFlags struct {
	dir, diff      string
	all, yes, undo bool
}

func rollbackCmd(g *globals) *cobra.Command {
	f := rollbackFlags{}
	cmd := &cobra.Command{
		Use: "rollback [number or hash] [file]", Short: "List checkpoints of a directory, or go back to one", Args: cobra.MaximumNArgs(2),
		Long: `Without a number it lists the checkpoints of a directory. With one it says what going back would do; --yes does it.

A rollback brings back what the agent changed and keeps what you edited yourself; --all takes your edits back too, and a
file name brings back that file alone. What was there before is kept: --undo brings it back.`,
		Example: "  herald rollback\n  herald rollback 1\n  herald rollback 1 --yes\n  herald rollback 2 notes.txt --yes\n  herald rollback --diff 1\n  herald rollback --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			store, place, err := g.checkpoints()
			if err != nil {
				return err
			}
			cwd, err := os.Getwd()
			if err != nil && f.dir == "" {
				return err
			}
			project, err := place.Named(f.dir, cwd)
			if err != nil {
				return fmt.Errorf("there are no checkpoints here: %w", err)
			}
			dir := project.Host
			if f.dir == "" {
				dir = store.RootFor(filepath.Join(dir, "x"))
			}
			return rollback(cmd.Context(), cmd.OutOrStdout(), store, dir, project.Shown, args, f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "the directory, by the container's name where commands run in one; default: the project of the current one, or where the container's sessions begin")
	cmd.Flags().BoolVar(&f.all, "all", false, "take back your own edits too")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do it; without it the rollback is only shown")
	cmd.Flags().StringVar(&f.diff, "diff", "", "show what has changed since that checkpoint")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "take the last rollback back")
	cmd.MarkFlagsMutuallyExclusive("diff", "undo", "all")
	return cmd
}

func rollback(ctx context.Context, out io.Writer, store *checkpoint.Store, dir string, shown func(string) string, args []string,
	f rollbackFlags) error {
	switch {
	case f.undo:
		res, err := store.Undo(ctx, dir, "")
		if err == nil {
			fmt.Fprintln(out, "The rollback is taken back.")
			printResult(out, res)
		}
		return err
	case f.diff != "":
		d, err := store.Diff(ctx, dir, f.diff)
		if err == nil {
			fmt.Fprint(out, d.Stat, d.Diff)
		}
		return err
	case len(args) == 0:
		return printCheckpoints(ctx, out, store, dir, shown(dir))
	}
	to := checkpoint.Target{Ref: args[0], All: f.all}
	if len(args) == 2 {
		to.File = args[1]
	}
	if !f.yes {
		plan, err := store.Preview(ctx, dir, to)
		if err == nil {
			printPlan(out, plan)
		}
		return err
	}
	res, err := store.Rollback(ctx, dir, to)
	if err == nil {
		fmt.Fprintf(out, "Back at %s (%s).\n", res.RestoredTo, res.Reason)
		printResult(out, res)
	}
	return err
}

func printCheckpoints(ctx context.Context, out io.Writer, store *checkpoint.Store, dir, name string) error {
	list, err := store.List(ctx, dir)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintf(out, "There is no checkpoint of %s yet. One is taken before the agent first changes a file in a turn.\n", name)
		return nil
	}
	fmt.Fprintf(out, "Checkpoints of %s, newest first:\n", name)
	for i, c := range list {
		fmt.Fprintf(out, "%3d. %s  %s  %s: %d files changed since (+%d -%d)\n", i+1, c.Short, c.At.Local().Format(time.DateTime), c.Reason, c.Files, c.Insertions, c.Deletions)
	}
	fmt.Fprintln(out, "\n`herald rollback N` shows what going back would do.")
	return nil
}

func printPlan(out io.Writer, plan checkpoint.Plan) {
	fmt.Fprintf(out, "Going back to %s (%s) would:\n", plan.To.Short, plan.To.Reason)
	printFiles(out, "bring back", plan.Restore)
	printFiles(out, "remove, made by the agent", plan.Delete)
	printFiles(out, "keep, edited by you", plan.Edited)
	printFiles(out, "keep, over the size limit and not in the checkpoint", plan.Oversize)
	if plan.Empty() {
		fmt.Fprintln(out, "  nothing to bring back")
		return
	}
	fmt.Fprintln(out, "Add --yes to do it.")
}

func printResult(out io.Writer, res checkpoint.Result) {
	printFiles(out, "as it was", res.Restored)
	printFiles(out, "kept, edited by you", res.Edited)
	printFiles(out, "kept, over the size limit and not in the checkpoint", res.Oversize)
	printFiles(out, "COULD NOT BE REMOVED", res.FailedDeletes)
	printFiles(out, "COULD NOT BE BROUGHT BACK", res.FailedRestores)
	if res.Backup != "" {
		fmt.Fprintln(out, "What was there before is kept: herald rollback --undo")
	}
}

func printFiles(out io.Writer, what string, paths []string) {
	for _, path := range paths {
		fmt.Fprintf(out, "  %s: %q\n", what, path)
	}
}

func checkpointsCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "checkpoints", Short: "Look at all checkpoints, and make room",
		Example: "  herald checkpoints status\n  herald checkpoints prune --retention-days 3\n  herald checkpoints clear --force"}
	cmd.AddCommand(checkpointsStatusCmd(g), checkpointsPruneCmd(g), checkpointsClearCmd(g))
	return cmd
}

func checkpointsStatusCmd(g *globals) *cobra.Command {
	return &cobra.Command{Use: "status", Aliases: []string{"list"}, Short: "Directories with checkpoints, and the room they take", Args: cobra.NoArgs, Example: "  herald checkpoints status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, place, err := g.checkpoints()
			if err != nil {
				return err
			}
			dirs, err := store.Dirs(cmd.Context())
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				n := "?"
				if list, err := store.List(cmd.Context(), dir); err == nil {
					n = fmt.Sprint(len(list))
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%4s  %s\n", n, place.Shown(dir))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d directories, %.1f MiB\n", len(dirs), float64(store.Size())/(1<<20))
			return nil
		}}
}

func checkpointsPruneCmd(g *globals) *cobra.Command {
	var days, size int
	var orphans, force bool
	cmd := &cobra.Command{Use: "prune", Short: "Remove checkpoints of directories that were not used for some days, and give the room back", Args: cobra.NoArgs,
		Example: "  herald checkpoints prune\n  herald checkpoints prune --max-size-mb 100\n  herald checkpoints prune --orphans --force",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, place, err := g.checkpoints()
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("retention-days") {
				days = place.Config.Checkpoints.RetentionDays
			}
			o := checkpoint.PruneOptions{Retention: time.Duration(days) * 24 * time.Hour, MaxTotal: int64(size) << 20}
			if orphans {
				if o.Orphans, err = store.Orphans(cmd.Context()); err != nil {
					return err
				}
				if len(o.Orphans) > 0 && !force {
					return fmt.Errorf("these directories are gone: %s; add --force to remove their checkpoints", strings.Join(o.Orphans, ", "))
				}
			}
			r, err := store.Prune(cmd.Context(), o)
			fmt.Fprintf(cmd.OutOrStdout(), "%d directories looked at, %d stale and %d orphaned removed, %.1f MiB freed, %.1f MiB left\n",
				r.Scanned, r.Stale, r.Orphans, float64(r.Freed)/(1<<20), float64(r.Size)/(1<<20))
			return err
		}}
	cmd.Flags().IntVar(&days, "retention-days", 0, "days an unused directory keeps its checkpoints (default checkpoints.retention_days)")
	cmd.Flags().IntVar(&size, "max-size-mb", 0, "also drop the oldest checkpoints until all have at most so many megabytes")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "also those of directories that are gone for certain")
	cmd.Flags().BoolVar(&force, "force", false, "do not ask about orphans")
	return cmd
}

func checkpointsClearCmd(g *globals) *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "clear", Short: "Remove all checkpoints", Args: cobra.NoArgs, Example: "  herald checkpoints clear --force",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, _, err := g.checkpoints()
			if err != nil {
				return err
			}
			if !force {
				return errors.New("this removes every checkpoint, and nothing can be rolled back afterwards; add --force to do it")
			}
			return store.Clear(cmd.Context())
		}}
	cmd.Flags().BoolVar(&force, "force", false, "really remove them")
	return cmd
}
