package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"herald/gateway/delivery"
)

func sendCmd(g *globals) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "send <target> [text]", Short: "Send a message to a chat through the running daemon", Args: cobra.RangeArgs(1, 2),
		Long: `Send a message to a chat. The target is platform:chat or platform:chat:thread, with a chat's id, the name of a room
(slack:#general) or a person (slack:@ann); a platform alone means its home channel. Where several accounts of a
platform run, the account may be named: slack/T0123ABCD:#general. herald channels lists what is known. Without a text or a file it is read from standard input. Markdown is shown in the platform's form,
and a long text is sent in parts. The message also enters the chat's own conversation, so that an answer
to it is understood.`,
		Example: "  herald send telegram:12345 'The backup is done.'\n  uptime | herald send telegram\n  herald send slack:#reports 'Today' --file report.pdf",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := ""
			for i, name := range files {
				path, err := filepath.Abs(name)
				if err != nil {
					return err
				}
				files[i] = path
			}
			if len(args) == 2 {
				text = args[1]
			} else if len(files) == 0 {
				data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
				if err != nil {
					return err
				}
				text = strings.TrimRight(string(data), "\n")
			}
			var reply delivery.Sent
			if err := g.call(cmd.Context(), "send", delivery.SendArgs{Target: args[0], Text: text, Files: files}, &reply); err != nil {
				return err
			}
			for _, line := range reply.Refused {
				fmt.Fprintln(cmd.ErrOrStderr(), "not sent: "+line)
			}
			switch reply.State {
			case "sent":
				fmt.Fprintln(cmd.OutOrStdout(), "sent")
				if reply.Error != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "not all of it: "+reply.Error)
				}
				if len(reply.Refused) > 0 || reply.Error != "" {
					return errors.New("a part of the message was not sent")
				}
				return nil
			case "pending", "attempting":
				fmt.Fprintf(cmd.OutOrStdout(), "queued; not delivered yet %s\n", reply.Error)
				return nil
			}
			return fmt.Errorf("%s: %s", reply.State, reply.Error)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "a file to send along; may be repeated")
	return cmd
}
