package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"herald/gateway/access"
)

func pairingCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "pairing", Short: "Let people in by the codes that strangers are given",
		Example: "  herald pairing list\n  herald pairing approve telegram ABCD2345"}
	act := func(cmd *cobra.Command, args access.PairingArgs) error {
		var reply json.RawMessage
		if err := g.call(cmd.Context(), "pairing", args, &reply); err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), reply)
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Who waits and who was let in", Args: cobra.NoArgs, Example: "  herald pairing list",
			RunE: func(cmd *cobra.Command, _ []string) error { return act(cmd, access.PairingArgs{Action: "list"}) }},
		&cobra.Command{Use: "approve <platform> <code>", Short: "Let the person with this code in", Args: cobra.ExactArgs(2),
			Example: "  herald pairing approve telegram ABCD2345",
			RunE: func(cmd *cobra.Command, a []string) error {
				return act(cmd, access.PairingArgs{Action: "approve", Platform: a[0], Code: a[1]})
			}},
		&cobra.Command{Use: "revoke <platform> <user id>", Short: "Shut a person out again", Args: cobra.ExactArgs(2),
			Example: "  herald pairing revoke telegram 123456789",
			RunE: func(cmd *cobra.Command, a []string) error {
				return act(cmd, access.PairingArgs{Action: "revoke", Platform: a[0], User: a[1]})
			}},
		&cobra.Command{Use: "clear-pending <platform>", Short: "Forget all codes that wait", Args: cobra.ExactArgs(1),
			Example: "  herald pairing clear-pending telegram",
			RunE: func(cmd *cobra.Command, a []string) error {
				return act(cmd, access.PairingArgs{Action: "clear", Platform: a[0]})
			}},
	)
	return cmd
}

func versionCmd() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  herald version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "herald "+version())
			return err
		}}
}
