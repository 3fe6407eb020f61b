package holdfast

// Intent is a goal with a branch, a budget and a parent. Its id travels in
// the token from the first crossing on; what an intent does with its branch
// belongs to the packages that own branches.
type Intent struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	Parent string `json:"parent,omitempty"`
	Branch string `json:"branch,omitempty"`
}
