package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
	"herald/sessions/sqlite"
)

func sessionsCmd(g *globals) *cobra.Command {
	var args admin.SessionsArgs
	asJSON := false
	cmd := &cobra.Command{
		Use: "sessions [words of a title]", Short: "List the sessions of this home", Args: cobra.MaximumNArgs(1),
		Example: "  herald sessions\n  herald sessions groceries --limit 5",
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) > 0 {
				args.Search = words[0]
			}
			if args.Limit < 1 || args.Limit > 10000 {
				return fmt.Errorf("--limit %d: want 1 to 10000", args.Limit)
			}
			var lines []admin.SessionLine
			err := g.call(cmd.Context(), "sessions", args, &lines)
			if errors.Is(err, admin.ErrNoDaemon) {
				err = g.withStore(cmd.Context(), func(store *sqlite.Store) (err error) {
					lines, err = admin.ListSessions(cmd.Context(), store, args)
					return err
				})
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), lines)
			}
			if len(lines) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no sessions")
			}
			for _, s := range lines {
				mark := " "
				if s.Live {
					mark = "*"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s  %s  %4d messages  %s/%s  %s\n", mark, s.ID, s.Updated.Local().Format("2006-01-02 15:04"),
					s.Messages, s.Platform, s.Chat, s.Title)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&args.Limit, "limit", 50, "most sessions, newest first")
	cmd.Flags().BoolVar(&args.Live, "live", false, "only current ones")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
