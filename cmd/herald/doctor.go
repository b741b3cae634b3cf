package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
	"herald/sessions/sqlite"
)

func doctorCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Check what Herald depends on"}
	rebuild := false
	db := &cobra.Command{
		Use: "db", Short: "Check the database", Args: cobra.NoArgs,
		Long: `Check the database: structure, references, the search index, rows that belong to nothing. With --rebuild
(the daemon must not run) the search index is made anew from the transcripts.`,
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
				if serr != nil {
					return serr
				}
				defer store.Close()
				if rebuild {
					if err := store.Rebuild(cmd.Context()); err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), "the search index was made anew")
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
	db.Flags().BoolVar(&rebuild, "rebuild", false, "make the search index anew")
	cmd.AddCommand(db)
	return cmd
}
