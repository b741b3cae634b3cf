package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"herald/gateway/directory"
)

func channelsCmd(g *globals) *cobra.Command {
	var args directory.Query
	asJSON := false
	cmd := &cobra.Command{
		Use: "channels [platform]", Short: "List the rooms and people that messages can be sent to", Args: cobra.MaximumNArgs(1),
		Long: `List the rooms and people that the running daemon can reach, with the target that herald send takes. The list is
made every five minutes from what the platforms tell and from the chats that have talked to Herald.`,
		Example: "  herald channels\n  herald channels slack --refresh\n  herald channels slack/T0123ABCD",
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) > 0 {
				args.Platform = words[0]
			}
			var lines []directory.Channel
			if err := g.call(cmd.Context(), "channels", args, &lines); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), lines)
			}
			if len(lines) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no rooms are known yet; write to the bot, or try --refresh")
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, l := range lines {
				name := "#" + l.Name
				if l.Type == "dm" {
					name = "@" + l.Name
				}
				more := strings.Join(l.Names, ", ")
				if l.In != "" {
					more = strings.TrimPrefix(more+" in "+l.In, " ")
				}
				if l.Home {
					more = strings.TrimPrefix(more+" (home channel)", " ")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Target, name, l.Type, more)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&args.Refresh, "refresh", false, "ask the platforms now")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
