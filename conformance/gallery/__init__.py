"""The gallery: published libraries behind small services, and what their contract shows of each."""
