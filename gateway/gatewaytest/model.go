package gatewaytest

import "herald/gateway/model/modeltest"

// Echo answers each request with "re: " and the newest user message.
func Echo() *modeltest.Script {
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply { return modeltest.Text("re: " + r.LastUser()) })
}
