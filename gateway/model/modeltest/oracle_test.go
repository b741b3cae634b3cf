package modeltest

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScript_AnthropicOracle: the official SDK reads the fake server, so what these tests see is what the real one
// writes.
func TestScript_AnthropicOracle(t *testing.T) {
	srv := Serve(NewScript(Reply{Text: "Hi there.", Reasoning: "Greet.", Signature: "sig", ToolCalls: []model.ToolCall{{ID: "toolu_1", Name: "f", Arguments: `{"a":1}`}}}))
	defer srv.Close()
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("k"), option.WithBaseURL(srv.Anthropic()),
		option.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(t.Context(), sdk.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 100,
		Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hi"))}})
	var msg sdk.Message
	for stream.Next() {
		require.NoError(t, msg.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Len(t, msg.Content, 3)
	require.Equal(t, "Greet.", msg.Content[0].Thinking)
	require.Equal(t, "sig", msg.Content[0].Signature)
	require.Equal(t, "Hi there.", msg.Content[1].Text)
	require.JSONEq(t, `{"a":1}`, string(msg.Content[2].Input))
	require.Equal(t, "tool_use", string(msg.StopReason))
	require.NoError(t, stream.Close())
	http.DefaultClient.CloseIdleConnections()
}

// TestScript_OpenAIOracle is the same with the library that is common for chat completions.
func TestScript_OpenAIOracle(t *testing.T) {
	srv := Serve(NewScript(Reply{Text: "Hi there.", ToolCalls: []model.ToolCall{{ID: "c", Name: "f", Arguments: `{"a":1}`}}}))
	defer srv.Close()
	config := goopenai.DefaultConfig("k")
	config.BaseURL = srv.OpenAI()
	stream, err := goopenai.NewClientWithConfig(config).CreateChatCompletionStream(t.Context(), goopenai.ChatCompletionRequest{Model: "m",
		StreamOptions: &goopenai.StreamOptions{IncludeUsage: true}, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "hi"}}})
	require.NoError(t, err)
	defer stream.Close()
	var text, arguments string
	var usage *goopenai.Usage
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			for _, call := range c.Delta.ToolCalls {
				arguments += call.Function.Arguments
			}
		}
	}
	require.Equal(t, "Hi there.", text)
	require.JSONEq(t, `{"a":1}`, arguments)
	require.NotNil(t, usage)
	require.Positive(t, usage.PromptTokens)
}

// TestScript_Wait: requests are recorded in order, and a test can wait for one.
func TestScript_Wait(t *testing.T) {
	srv := Serve(NewScript(Text("a")))
	defer srv.Close()
	require.False(t, srv.Wait(1, time.Millisecond))
	resp, err := http.Post(srv.OpenAI()+"/chat/completions", "application/json", http.NoBody)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode, "what is no request is refused and not recorded")
	require.NoError(t, resp.Body.Close())
	require.Empty(t, srv.Requests())
	http.DefaultClient.CloseIdleConnections()
}
