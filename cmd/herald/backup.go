package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
	"herald/sessions/sqlite"
)

func backupCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "backup [file]", Short: "Copy the database while the daemon runs, and check the copy", Args: cobra.MaximumNArgs(1),
		Long: `Copy the database to a file that does not exist yet, and check the copy. The daemon goes on meanwhile. Without
a file name the copy is herald-<time>.db in the current directory.

To restore: stop the daemon, replace herald.db in the home by the copy, delete herald.db-wal and herald.db-shm,
and start the daemon.`,
		Example: "  herald backup\n  herald backup /var/backups/herald.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			dest := "herald-" + time.Now().Format("20060102-150405") + ".db"
			if len(args) > 0 {
				dest = args[0]
			}
			dest, err := filepath.Abs(dest)
			if err != nil {
				return err
			}
			err = g.call(cmd.Context(), "backup", admin.BackupArgs{Dest: dest}, nil)
			if errors.Is(err, admin.ErrNoDaemon) {
				err = g.withStore(cmd.Context(), func(store *sqlite.Store) error { return store.Backup(cmd.Context(), dest) })
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is complete and passes its check\n", dest)
			return nil
		},
	}
}
