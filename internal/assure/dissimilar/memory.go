package dissimilar

// memory remembers the newest of what it was told: at least half of limit, at
// most limit. forgot says that there was more, and that what is not found may
// have been there.
type memory[K comparable, V any] struct {
	limit    int
	now, old map[K]V
	forgot   bool
}

func (m *memory[K, V]) get(k K) (V, bool) {
	if v, ok := m.now[k]; ok {
		return v, true
	}
	v, ok := m.old[k]
	if ok {
		// What is used stays.
		m.put(k, v)
	}
	return v, ok
}

func (m *memory[K, V]) put(k K, v V) {
	if m.now == nil {
		m.now = map[K]V{}
	}
	if len(m.now) >= max(1, m.limit/2) {
		if _, there := m.now[k]; !there {
			m.forgot = m.forgot || len(m.old) > 0
			m.old, m.now = m.now, map[K]V{}
		}
	}
	m.now[k] = v
}

func (m *memory[K, V]) drop(k K) {
	delete(m.now, k)
	delete(m.old, k)
}
