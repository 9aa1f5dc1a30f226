"""Model WiFi and LTE cells for both engines. No module here does input, output or sleeping."""
