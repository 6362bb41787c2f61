"""Views: rows and traces as tables, pictures and pages. A view computes no metric."""
