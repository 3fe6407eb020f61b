package router

import (
	"fmt"
	"strings"
)

// between separates a server's name from its tool's, where several servers
// stand behind one endpoint.
const between = "__"

// FindNameCollision says which two of the servers' names could make one name of two tools,
// such as a with the tool b__c and a__b with the tool c; "" where none can.
func FindNameCollision(names []string) string {
	for i, a := range names {
		for j, b := range names {
			if i != j && strings.HasPrefix(b+between, a+between) {
				return fmt.Sprintf("the tools of the MCP servers %q and %q could not be told apart", a, b)
			}
		}
	}
	return ""
}
