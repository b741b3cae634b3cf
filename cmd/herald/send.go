package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"herald/gateway"
)

func sendCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "send <target> [text]", Short: "Send a message to a chat through the running daemon", Args: cobra.RangeArgs(1, 2),
		Long: `Send a message to a chat. The target is platform:chat or platform:chat:thread, with a chat's id, the name of a room
(slack:#general) or a person (slack:@ann); a platform alone means its home channel. Where several accounts of a
platform run, the account may be named: slack/T0123ABCD:#general. herald channels lists what is known. Without a text it is read from standard input. Markdown is shown in the platform's form,
and a long text is sent in parts. The message also enters the chat's own conversation, so that an answer
to it is understood.`,
		Example: "  herald send telegram:12345 'The backup is done.'\n  uptime | herald send telegram",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := ""
			if len(args) == 2 {
				text = args[1]
			} else {
				data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
				if err != nil {
					return err
				}
				text = strings.TrimRight(string(data), "\n")
			}
			var reply gateway.SendReply
			if err := g.call(cmd.Context(), "send", gateway.SendArgs{Target: args[0], Text: text}, &reply); err != nil {
				return err
			}
			switch reply.State {
			case "sent":
				fmt.Fprintln(cmd.OutOrStdout(), "sent")
				return nil
			case "pending", "attempting":
				fmt.Fprintf(cmd.OutOrStdout(), "queued; not delivered yet %s\n", reply.Error)
				return nil
			}
			return fmt.Errorf("%s: %s", reply.State, reply.Error)
		},
	}
}
