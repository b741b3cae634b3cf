package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
	"herald/sessions/sqlite"
)

func doctorCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Check what Herald depends on", Example: "  herald doctor db"}
	rebuild := false
	db := &cobra.Command{
		Use: "db", Short: "Check the database", Args: cobra.NoArgs,
		Long: `Check the database: structure, references, the search index, rows that belong to nothing. With --rebuild
(the daemon must not run) the search index is rebuilt from the transcripts.`,
		Example: "  herald doctor db\n  herald doctor db --rebuild",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var report sqlite.Report
			err := g.call(cmd.Context(), "check", nil, &report)
			switch {
			case err == nil && rebuild:
				return errors.New("--rebuild needs the database for itself: stop the daemon first")
			case errors.Is(err, admin.ErrNoDaemon):
				paths, perr := g.paths()
				if perr != nil {
					return perr
				}
				store, serr := g.openStore(cmd.Context(), paths)
				var corrupt *sqlite.CorruptError
				if errors.As(serr, &corrupt) {
					return explainDamage(cmd.Context(), cmd.OutOrStdout(), corrupt)
				}
				if serr != nil {
					return serr
				}
				defer store.Close()
				if rebuild {
					if err := store.Rebuild(cmd.Context()); err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), "the search index was rebuilt")
				}
				report, err = store.Check(cmd.Context())
			}
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), report.String())
			if !report.OK() {
				return errors.New("the database has problems: see above; a backup can be restored as herald backup --help says")
			}
			return nil
		},
	}
	db.Flags().BoolVar(&rebuild, "rebuild", false, "rebuild the search index")
	cmd.AddCommand(db)
	return cmd
}

// explainDamage says what is wrong with a database that can't be opened, how much of it can be read, and what
// to do.
func explainDamage(ctx context.Context, w io.Writer, damage *sqlite.CorruptError) error {
	fmt.Fprintf(w, "%s can't be used: %v\n", damage.Path, damage.Err)
	if report, err := sqlite.CheckFile(ctx, damage.Path); err != nil {
		fmt.Fprintf(w, "nothing of it can be read: %v\n", err)
	} else {
		fmt.Fprint(w, report.String())
	}
	if damage.Copy != "" {
		fmt.Fprintf(w, "a copy is in %s\n", damage.Copy)
	}
	dir := filepath.Dir(damage.Path)
	fmt.Fprintf(w, `
To go on, choose one:
  - put a backup in its place:  rm -f %[1]s-wal %[1]s-shm && cp <backup> %[1]s
  - save what can be read:      sqlite3 %[1]s .recover | sqlite3 %[2]s/recovered.db
    and put recovered.db in its place the same way
  - start without the old conversations:  mv %[1]s %[1]s.old && rm -f %[1]s-wal %[1]s-shm
`, damage.Path, dir)
	return coded{errors.New("the database is damaged: see above"), exitConfig}
}
