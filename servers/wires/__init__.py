"""What the kit puts around a service: its clients, the effects of its handlers, its store's line, its processes."""
