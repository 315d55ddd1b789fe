"""What the machine is: devices, links, resources, locality classes, and a NetworkX graph of it."""
